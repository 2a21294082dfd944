"""python -m interlock.demo"""

from interlock.demo.run import main

if __name__ == "__main__":
    main()
