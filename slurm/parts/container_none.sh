
IN=() # programs run directly on the node
